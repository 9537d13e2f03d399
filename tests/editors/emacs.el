;;; emacs.el --- Drive Emacs through the main job  -*- lexical-binding: t; -*-

;; Writes what Emacs holds, as JSON, to $SKYLINE_RESULT.  Lines in the result
;; count from 1.  Runs in a terminal, since only a real redisplay asks for
;; inlay hints.

(require 'seq)
(require 'skyline-lsp)

(declare-function lsp-code-actions-at-point "ext:lsp-mode")
(declare-function lsp-describe-thing-at-point "ext:lsp-mode")
(declare-function lsp-execute-code-action "ext:lsp-mode")

(defconst test-lsp-mode (equal (getenv "SKYLINE_CLIENT") "lsp-mode")
  "Whether lsp-mode is the client; Eglot is, else.")

(defconst test-limit 240
  "Seconds to wait for what went wrong; a busy machine takes minutes for a run.")

(defvar test-result nil "What was found, as an alist.")

(defun test-note (key value)
  "Put VALUE under KEY into the result."
  (push (cons key value) test-result))

(defun test-wait-for (what value)
  "Call VALUE until it returns something, and return that.  WHAT says what it is."
  (let ((until (time-add nil test-limit)) found)
    (while (not (setq found (funcall value)))
      (when (time-less-p until nil)
        (error "Waited in vain for %s; messages:\n%s" what
               (with-current-buffer "*Messages*" (buffer-string))))
      ;; Long enough for timers that wait until Emacs is idle: by one of them
      ;; Eglot tells the server of changes, after half a second.
      (sit-for 1))
    found))

(defun test-text ()
  "Text of the buffer."
  (substring-no-properties (buffer-string)))

(defun test-go-to (text)
  "Put point on the first line with TEXT."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(defun test-hints ()
  "Hints that are shown in the buffer."
  (vconcat
   (seq-keep
    (lambda (overlay)
      (when-let* ((shown (or (and (overlay-get overlay 'eglot--inlay-hint)
                                  (overlay-get overlay 'after-string))
                             (and (overlay-get overlay 'lsp-inlay-hint)
                                  (overlay-get overlay 'before-string)))))
        `((line . ,(line-number-at-pos (overlay-start overlay)))
          (text . ,(string-trim (substring-no-properties shown))))))
    (overlays-in (point-min) (point-max)))))

(defun test-some-hints ()
  "Hints that are shown in the buffer; nil where there are none."
  (let ((hints (test-hints)))
    (and (> (length hints) 0) hints)))

(defun test-lenses ()
  "Lenses that are shown in the buffer."
  (vconcat
   (if test-lsp-mode
       (seq-keep
        (lambda (overlay)
          (when (overlay-get overlay 'lsp-lens)
            `((line . ,(line-number-at-pos (overlay-start overlay)))
              (text . ,(substring-no-properties (overlay-get overlay 'lsp-original))))))
        (overlays-in (point-min) (point-max)))
     (mapcar (lambda (lens)
               `((line . ,(car lens)) (text . ,(plist-get (cdr lens) :title))))
             (skyline-lsp-lenses)))))

(defun test-lens-p (text)
  "A function that returns the lenses once one holds TEXT."
  (lambda ()
    (let ((lenses (test-lenses)))
      (and (seq-some (lambda (lens) (string-search text (alist-get 'text lens))) lenses)
           lenses))))

(defun test-message-p (regexp)
  "A function that returns the last message that REGEXP matches."
  (lambda ()
    (with-current-buffer "*Messages*"
      (save-excursion
        (goto-char (point-max))
        (and (re-search-backward regexp nil t)
             (buffer-substring-no-properties (line-beginning-position) (point-max)))))))

(defun test-summary ()
  "Diagnostics of the buffer."
  (vconcat
   (mapcar (lambda (diagnostic)
             `((line . ,(line-number-at-pos (flymake-diagnostic-beg diagnostic)))
               (message . ,(flymake-diagnostic-text diagnostic))))
           (flymake-diagnostics))))

(defun test-hover ()
  "Text of the hover at point, once it is there."
  (if test-lsp-mode
      (lsp-describe-thing-at-point)
    (eldoc t))
  (test-wait-for
   "the hover"
   (lambda ()
     (when-let* ((buffer (seq-find (lambda (buffer)
                                     (string-match-p "\\`\\*\\(eldoc\\|lsp-help\\)" (buffer-name buffer)))
                                   (buffer-list)))
                 (text (with-current-buffer buffer (test-text)))
                 ((string-search "forward" text)))
       text))))

(defun test-execute-action (title)
  "Execute the code action of the line at point whose title starts with TITLE."
  (let* ((actions (if test-lsp-mode
                      (lsp-code-actions-at-point)
                    (eglot-code-actions (line-beginning-position) (line-end-position))))
         (action (seq-find (lambda (action)
                             (string-prefix-p title (skyline-lsp--get action :title)))
                           actions)))
    (if test-lsp-mode
        (lsp-execute-code-action action)
      (eglot-execute (eglot-current-server) action))))

(defun test-undo ()
  "Undo once, as a user would."
  (undo-boundary)
  (setq last-command nil)
  (undo))

(defun test-main ()
  "The main job."
  (find-file "providers.py")
  (test-wait-for "the lens before a run" (test-lens-p "Profile this training step"))
  (skyline-lsp-profile)
  (test-note 'diagnostics
             (test-wait-for "the summary"
                            (lambda ()
                              (let ((found (test-summary)))
                                (and (> (length found) 0) found)))))
  (test-note 'lenses (test-wait-for "lenses" (test-lens-p "profile again")))
  (let ((of-providers (test-wait-for "hints" #'test-some-hints))
        (providers (current-buffer)))
    (find-file "resnet.py")
    (test-go-to "x = self.stage5(x)")
    (recenter)
    (test-note 'hints
               `((providers.py . ,of-providers)
                 (resnet.py . ,(test-wait-for "hints of the model" #'test-some-hints))))
    (test-note 'hover (test-hover))

    (switch-to-buffer providers)
    (test-go-to "batch_size: int = 8")
    (let ((before (test-text)))
      (undo-boundary)
      (skyline-lsp-set-batch-size 4)
      (test-wait-for "the message that the size was changed" (test-message-p "8 -> 4"))
      (test-note 'after (test-text))
      (test-undo)
      (test-note 'undone (test-text))

      (undo-boundary)
      (test-execute-action "Set batch size to 4")
      (test-note 'after_action (test-text))
      (test-undo)
      (test-note 'undone_action (test-text))))

  ;; On a busy machine the measured times may be too noisy to predict from; the
  ;; server then says so.
  (skyline-lsp-predict 4)
  (test-note 'prediction (test-wait-for "the prediction" (test-message-p "\\(?:Batch size 4\\|Skyline: .*predict\\)")))
  (skyline-lsp-status)
  (test-note 'status (test-wait-for "the status" (test-message-p "Skyline: providers.py")))

  (let ((browse-url-browser-function (lambda (address &rest _) (test-note 'panel address))))
    (skyline-lsp-open-panel)
    (test-wait-for "the panel" (lambda () (assq 'panel test-result))))

  (skyline-lsp-profile 16)
  (test-wait-for "the lens of a run" (test-lens-p "(cancel)"))
  (skyline-lsp-cancel)
  (test-wait-for "the lens after the run was cancelled" (test-lens-p "profile again"))
  (skyline-lsp-clear)
  (test-wait-for "the lens after the profile was cleared" (test-lens-p "Profile this training step")))

(defun test-run ()
  "Run the main job, write the result and leave."
  (condition-case failure
      (test-main)
    (error (test-note 'error (format "%S" failure))))
  (with-temp-file (getenv "SKYLINE_RESULT")
    (set-buffer-file-coding-system 'utf-8)
    (insert (json-encode test-result)))
  (kill-emacs))

(run-at-time 0.5 nil #'test-run)

;;; emacs.el ends here
