;; Looks at a kernel in an Emacs with eglot that a user's init.el has set up, and writes down what was seen.
;; Environment: WW_KERNEL is the file to open, WW_RESULT the file to write, WW_ACTION the code action to choose.
(require 'json)

(defvar seen (list))
(defun note (what value) (push (cons what value) seen))

(defun await (what happens)
  (with-timeout (60 (error "No %s came" what))
    (while (not (funcall happens)) (accept-process-output nil 0.05))))

(defun look ()
  (find-file (getenv "WW_KERNEL"))
  (run-hooks 'post-command-hook) ; where eglot-ensure starts the server; a batch has no commands
  (await "server" #'eglot-current-server)
  (note 'mode major-mode)
  (await "diagnostic" #'flymake-diagnostics)
  (let ((first (car (flymake-diagnostics))) documented)
    (goto-char (flymake-diagnostic-beg first))
    (note 'finding (list (cons 'text (flymake-diagnostic-text first)) (cons 'line (line-number-at-pos))))
    (eglot-hover-eldoc-function (lambda (text &rest _) (setq documented (or text "nothing"))))
    (await "hover" (lambda () documented))
    (note 'hover (substring-no-properties documented))
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ offered &rest _)
                 (let ((titles (mapcar #'car offered)))
                   (note 'actions (vconcat titles))
                   (seq-find (lambda (title) (string-prefix-p (getenv "WW_ACTION") title)) titles))))
              ((symbol-function 'y-or-n-p) #'always) ; eglot asks before it applies a server's edit
              (tick (buffer-chars-modified-tick)))
      (let ((last-nonmenu-event t)) ; asked for by a key, not by the mouse
        (condition-case nil
            (call-interactively #'eglot-code-actions)
          (jsonrpc-error (note 'waited t)))) ; for a command that goes on
      (await "change of the text" (lambda () (/= tick (buffer-chars-modified-tick)))))
    (save-buffer) ; sends the change: a batch is never idle
    (await "end of the finding" (lambda () (not (flymake-diagnostics))))
    (note 'text (buffer-string))))

(condition-case problem
    (look)
  (error (note 'problems (vector (error-message-string problem)))))
(with-temp-file (getenv "WW_RESULT") (insert (json-encode seen)))
(kill-emacs)
