;;; warpwright-ghost.el --- Ghost text of warpwright, by eglot -*- lexical-binding: t -*-

;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; `warpwright-ghost-mode' asks after a pause for the kernel that the comment at point means and shows it behind point.
;; While it is shown, the keys of `warpwright-ghost-map' accept it, a line or a word of it, or show the next one.

;;; Code:

(require 'eglot)
(require 'seq)

(defgroup warpwright-ghost nil "Ghost text of warpwright." :group 'eglot)
(defcustom warpwright-ghost-pause 0.3 "Seconds without a key before it is asked for." :type 'number)

(defvar-local warpwright-ghost--overlay nil "What is shown, with its texts in `texts', the one that is seen first.")
(defvar-local warpwright-ghost--timer nil)
(defvar-local warpwright-ghost--asked 0 "The number of the last request: answers to others are too late.")

(defvar warpwright-ghost-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "TAB") #'warpwright-ghost-accept)
    (define-key map (kbd "M-f") #'warpwright-ghost-accept-word)
    (define-key map (kbd "M-e") #'warpwright-ghost-accept-line)
    (define-key map (kbd "M-n") #'warpwright-ghost-next)
    (define-key map (kbd "C-g") #'warpwright-ghost-dismiss)
    map)
  "Keys while ghost text is shown.")

(defun warpwright-ghost-text ()
  "What is shown, nil where nothing is."
  (and warpwright-ghost--overlay (car (overlay-get warpwright-ghost--overlay 'texts))))

(defun warpwright-ghost-dismiss ()
  "Take away what is shown."
  (interactive)
  (when warpwright-ghost--overlay
    (delete-overlay warpwright-ghost--overlay)
    (setq warpwright-ghost--overlay nil)))

(defun warpwright-ghost--show (texts)
  (warpwright-ghost-dismiss)
  (when texts
    (let ((overlay (make-overlay (point) (point) nil t)) (seen (propertize (car texts) 'face 'shadow)))
      (put-text-property 0 1 'cursor t seen)
      (overlay-put overlay 'after-string seen)
      (overlay-put overlay 'texts texts)
      (overlay-put overlay 'keymap warpwright-ghost-map)
      (setq warpwright-ghost--overlay overlay))))

(defun warpwright-ghost--ask (kind &optional then)
  "Ask by a key (KIND 1) or by itself (2), and call THEN once it is shown."
  (when-let ((server (eglot-current-server)))
    (eglot--signal-textDocument/didChange)
    (let ((buffer (current-buffer)) (at (point)) (tick (buffer-chars-modified-tick))
          (number (cl-incf warpwright-ghost--asked)))
      (jsonrpc-async-request
       server :textDocument/inlineCompletion
       (append (eglot--TextDocumentPositionParams) (list :context (list :triggerKind kind)))
       :success-fn
       (lambda (answer)
         (when (buffer-live-p buffer)
           (with-current-buffer buffer
             (when (and (= number warpwright-ghost--asked) (= at (point)) (= tick (buffer-chars-modified-tick)))
               (warpwright-ghost--show
                (mapcar (lambda (item) (string-replace "\r\n" "\n" (plist-get item :insertText)))
                        (if (vectorp answer) answer (plist-get answer :items))))
               (when then (funcall then))))))
       :error-fn #'ignore :timeout-fn #'ignore :timeout 120))))

(defun warpwright-ghost-request ()
  "Ask for the kernel that the comment at point means, whatever its words are."
  (interactive)
  (warpwright-ghost-dismiss)
  (warpwright-ghost--ask 1))

(defun warpwright-ghost-next ()
  "Show the next alternative; they are asked for where only the likeliest is here."
  (interactive)
  (let ((texts (and warpwright-ghost--overlay (overlay-get warpwright-ghost--overlay 'texts))))
    (if (cdr texts)
        (warpwright-ghost--show (append (cdr texts) (list (car texts))))
      (when texts
        (warpwright-ghost--ask 1 (lambda ()
                                   (when (cdr (overlay-get warpwright-ghost--overlay 'texts))
                                     (warpwright-ghost-next))))))))

(defun warpwright-ghost--take (count)
  (when-let ((text (warpwright-ghost-text)))
    (warpwright-ghost-dismiss)
    (insert (substring text 0 count))
    (when (< count (length text)) (warpwright-ghost--show (list (substring text count))))))

(defun warpwright-ghost-accept ()
  "Accept all that is shown."
  (interactive)
  (warpwright-ghost--take (length (warpwright-ghost-text))))

(defun warpwright-ghost-accept-word ()
  "Accept its first word."
  (interactive)
  (when-let ((text (warpwright-ghost-text)))
    (warpwright-ghost--take (if (string-match "\\`[ \t\n]*\\(?:[A-Za-z0-9_]+\\|[^A-Za-z0-9_ \t\n]+\\)" text)
                                (match-end 0)
                              (length text)))))

(defun warpwright-ghost-accept-line ()
  "Accept its first line."
  (interactive)
  (when-let ((text (warpwright-ghost-text)))
    (warpwright-ghost--take (if-let ((end (string-search "\n" text 1))) (1+ end) (length text)))))

(defun warpwright-ghost--typed ()
  "Show what is left of a text that begins with what was typed, nil else."
  (when warpwright-ghost--overlay
    (let* ((from (overlay-start warpwright-ghost--overlay))
           (typed (and from (<= from (point)) (buffer-substring-no-properties from (point))))
           (texts (and typed (seq-filter (lambda (each) (and (string-prefix-p typed each)
                                                             (> (length each) (length typed))))
                                         (overlay-get warpwright-ghost--overlay 'texts)))))
      (when texts
        (unless (string-empty-p typed)
          (warpwright-ghost--show (mapcar (lambda (each) (substring each (length typed))) texts)))
        t))))

(defun warpwright-ghost--after-command ()
  (when (timerp warpwright-ghost--timer) (cancel-timer warpwright-ghost--timer))
  (unless (warpwright-ghost--typed)
    (warpwright-ghost-dismiss)
    (cl-incf warpwright-ghost--asked)
    (when (memq this-command '(self-insert-command newline newline-and-indent))
      (let ((buffer (current-buffer)))
        (setq warpwright-ghost--timer
              (run-with-idle-timer warpwright-ghost-pause nil
                                   (lambda ()
                                     (when (buffer-live-p buffer)
                                       (with-current-buffer buffer (warpwright-ghost--ask 2))))))))))

;;;###autoload
(define-minor-mode warpwright-ghost-mode
  "Show the kernel that the comment at point means behind point."
  :lighter " Ghost"
  (if warpwright-ghost-mode
      (add-hook 'post-command-hook #'warpwright-ghost--after-command nil t)
    (remove-hook 'post-command-hook #'warpwright-ghost--after-command t)
    (warpwright-ghost-dismiss)))

(provide 'warpwright-ghost)
;;; warpwright-ghost.el ends here
