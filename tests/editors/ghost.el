;; Looks at ghost text in an Emacs with eglot that a user's init.el has set up, and writes down what was seen.
;; Environment: WW_KERNEL is the file to open, WW_RESULT the file to write.
(require 'json)

(defvar seen (list))
(defun note (what value) (push (cons what value) seen))

(defun await (what happens)
  (with-timeout (150 (error "No %s came" what))
    (while (not (funcall happens)) (accept-process-output nil 0.05))))

(defun below (comment)
  (erase-buffer)
  (insert comment "\n"))

(defun look ()
  (find-file (getenv "WW_KERNEL"))
  (run-hooks 'post-command-hook) ; where eglot-ensure starts the server; a batch has no commands
  (await "server" #'eglot-current-server)
  (note 'mode (if warpwright-ghost-mode t :json-false))
  (below "// row-wise softmax of x[rows][cols]")
  (warpwright-ghost-request)
  (await "ghost text" #'warpwright-ghost-text)
  (let ((all (warpwright-ghost-text)))
    (note 'shown (car (split-string all "\n")))
    (note 'drawn (if (equal all (overlay-get warpwright-ghost--overlay 'after-string)) t :json-false))
    (warpwright-ghost-accept-word)
    (note 'word (buffer-substring (line-beginning-position) (line-end-position)))
    (insert (substring (warpwright-ghost-text) 0 4)) ; typed by hand
    (run-hooks 'post-command-hook)
    (warpwright-ghost-accept-line)
    (note 'line (save-excursion (forward-line -1) (buffer-substring (point) (line-end-position))))
    (warpwright-ghost-accept)
    (note 'whole (if (string-suffix-p all (buffer-string)) t :json-false)))
  (below "// softmax of x")
  (warpwright-ghost-request)
  (await "the likeliest" #'warpwright-ghost-text)
  (let ((first (warpwright-ghost-text)))
    (warpwright-ghost-next)
    (await "the next" (lambda () (not (equal first (warpwright-ghost-text))))))
  (insert "other")
  (run-hooks 'post-command-hook)
  (note 'gone (if (warpwright-ghost-text) :json-false t))
  (set-buffer-modified-p nil))

(condition-case problem
    (look)
  (error (note 'problems (vector (error-message-string problem)))))
(with-temp-file (getenv "WW_RESULT") (insert (json-encode seen)))
(kill-emacs)
