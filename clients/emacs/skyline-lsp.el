;;; skyline-lsp.el --- Cost of each line of a PyTorch training step  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The skyline-lsp authors

;; Author: The skyline-lsp authors
;; Maintainer: The skyline-lsp authors
;; URL: https://github.com/skyline-lsp/skyline-lsp
;; Version: 0.1.0
;; Package-Requires: ((emacs "29.1"))
;; Keywords: tools, languages, processes
;; SPDX-License-Identifier: Apache-2.0

;;; Commentary:

;; Skyline profiles one training step of a PyTorch project in the background
;; and writes the cost of each line beside it.  It predicts what another batch
;; size would do to throughput and peak memory, and changes the batch size in
;; the source.
;;
;; Install the server by `pip install skyline-lsp', in any Python 3.10 or
;; later, and then, with Eglot:
;;
;;   (require 'skyline-lsp)
;;   (add-hook 'python-base-mode-hook #'skyline-lsp)
;;
;; Eglot runs one server in a buffer.  `M-x skyline-lsp' starts this one where
;; none runs, and asks before it takes another's place.
;;
;; With lsp-mode, which runs several beside each other, the server is an add-on
;; to the one you use for Python:
;;
;;   (with-eval-after-load 'lsp-mode (skyline-lsp-register))
;;
;; Then open a file with a training step, and `M-x skyline-lsp-profile'.
;; Costs are inlay hints; lenses stand above what is profiled and above the
;; batch size (Eglot has none of its own: they are drawn here; run one by the
;; mouse or `M-x skyline-lsp-run-lens').  Bind `skyline-lsp-command-map' to a
;; prefix to have the commands at hand.

;;; Code:

(require 'cl-lib)
(require 'eglot)
(require 'seq)
(require 'subr-x)

(declare-function lsp-activate-on "ext:lsp-mode")
(declare-function lsp-find-workspace "ext:lsp-mode")
(declare-function lsp-inlay-hints-mode "ext:lsp-mode")
(declare-function lsp-register-client "ext:lsp-mode")
(declare-function lsp-request-async "ext:lsp-mode")
(declare-function lsp-stdio-connection "ext:lsp-mode")
(declare-function lsp-update-inlay-hints "ext:lsp-mode")
(declare-function lsp--workspace-buffers "ext:lsp-mode")
(declare-function make-lsp-client "ext:lsp-mode")
(defvar lsp--cur-workspace)

(defgroup skyline-lsp nil
  "Cost of each line of a PyTorch training step."
  :group 'eglot
  :prefix "skyline-lsp-")

(defcustom skyline-lsp-command '("skyline-lsp")
  "Program of the server, and its arguments."
  :type '(repeat string)
  :risky t)

(defcustom skyline-lsp-settings nil
  "Settings of the server, its section \"skyline\", as a property list.
For example (:python \"/path/to/python\" :hints (:thresholdPercent 2)).
It decides which program is run, so a project can't set it for you."
  :type '(plist :key-type symbol :value-type sexp)
  :risky t)

(defcustom skyline-lsp-trusted t
  "Whether a project's code may be run when you ask for a profile.
A function is called with the project's root."
  :type '(choice (const :tag "In every project" t)
                 (const :tag "Never" nil)
                 (function :tag "Where a function says so"))
  :risky t)

(defface skyline-lsp-lens
  '((t :inherit shadow :height 0.9))
  "Face of code lenses under Eglot.")

;;; The server under Eglot

(defclass skyline-lsp-eglot-server (eglot-lsp-server) ()
  :documentation "The server skyline-lsp.")

(defvar skyline-lsp--modes '(python-mode python-ts-mode)
  "Major modes that the server is for.")

;;;###autoload
(defun skyline-lsp ()
  "Start the server in this buffer's project, through Eglot."
  (interactive)
  (let ((eglot-server-programs
         (cons `(,skyline-lsp--modes
                 . (skyline-lsp-eglot-server . ,skyline-lsp-command))
               eglot-server-programs)))
    (if (called-interactively-p 'interactive)
        (call-interactively #'eglot)
      (unless (eglot-current-server)
        (apply #'eglot (skyline-lsp--contact))))))

(defun skyline-lsp--contact ()
  "Arguments of `eglot' for this buffer, without a question."
  (seq-take (eglot--guess-contact) 5))

(defun skyline-lsp--root (server)
  "Root of the project that SERVER is for."
  (expand-file-name (project-root (eglot--project server))))

(defun skyline-lsp--initialization (root)
  "Options that the server gets at its start, for the project at ROOT."
  (append
   (list :trusted (if (if (functionp skyline-lsp-trusted)
                          (funcall skyline-lsp-trusted root)
                        skyline-lsp-trusted)
                      t
                    :json-false))
   skyline-lsp-settings))

(cl-defmethod eglot-initialization-options ((server skyline-lsp-eglot-server))
  "Settings for SERVER, and whether the project is trusted."
  (skyline-lsp--initialization (skyline-lsp--root server)))

(cl-defmethod eglot-client-capabilities ((_server skyline-lsp-eglot-server))
  "Eglot's own capabilities, and what is added to them here."
  (let ((capabilities (copy-tree (cl-call-next-method))))
    (dolist (kind '(:inlayHint :codeLens))
      (setf (plist-get (plist-get capabilities :workspace) kind)
            '(:refreshSupport t)))
    (setf (plist-get (plist-get capabilities :textDocument) :codeLens)
          '(:dynamicRegistration :json-false))
    capabilities))

(cl-defmethod eglot-handle-request
  ((_server skyline-lsp-eglot-server) (_method (eql workspace/configuration))
   &key items)
  "Answer with `skyline-lsp-settings' for each of ITEMS.
Eglot would take `eglot-workspace-configuration', which a project may set."
  (vconcat (mapcar (lambda (item)
                     (and (equal (plist-get item :section) "skyline")
                          skyline-lsp-settings))
                   items)))

(cl-defmethod eglot-handle-request
  ((server skyline-lsp-eglot-server)
   (_method (eql workspace/inlayHint/refresh)) &rest _)
  "Ask SERVER for the hints of its buffers again."
  (skyline-lsp--in-buffers server #'skyline-lsp--refresh-hints)
  nil)

(cl-defmethod eglot-handle-request
  ((server skyline-lsp-eglot-server)
   (_method (eql workspace/codeLens/refresh)) &rest _)
  "Ask SERVER for the lenses of its buffers again."
  (skyline-lsp--in-buffers server #'skyline-lsp--refresh-lenses)
  nil)

(defun skyline-lsp--in-buffers (server function)
  "Call FUNCTION in each buffer of SERVER, once this request is answered."
  (run-at-time
   0 nil
   (lambda ()
     (dolist (buffer (eglot--managed-buffers server))
       (when (buffer-live-p buffer)
         (with-current-buffer buffer (funcall function)))))))

(defun skyline-lsp--refresh-hints ()
  "Ask for the hints of this buffer again."
  (when (bound-and-true-p eglot-inlay-hints-mode)
    ;; Eglot has no public way: toggling the mode takes hints away, and the
    ;; request for an unchanged region is then left out.
    (eglot--update-hints-1 (point-min) (point-max))))

(defun skyline-lsp--managed-p ()
  "The server of this buffer where it is ours, under Eglot."
  (let ((server (eglot-current-server)))
    (and (skyline-lsp-eglot-server-p server) server)))

(defun skyline-lsp--on-managed ()
  "Draw lenses while Eglot manages this buffer with our server."
  (if (and (eglot-managed-p) (skyline-lsp--managed-p))
      (skyline-lsp--refresh-lenses)
    (skyline-lsp--remove-lenses)))

(add-hook 'eglot-managed-mode-hook #'skyline-lsp--on-managed)

;;; Lenses, which Eglot has not

(defvar-keymap skyline-lsp-lens-map
  :doc "Keys on a lens."
  "<mouse-1>" #'skyline-lsp-click-lens
  "<mouse-2>" #'skyline-lsp-click-lens)

(defun skyline-lsp--remove-lenses ()
  "Remove the lenses of this buffer."
  (without-restriction
    (remove-overlays (point-min) (point-max) 'skyline-lsp-lenses t)
    (dolist (overlay (overlays-in (point-min) (point-max)))
      (when (overlay-get overlay 'skyline-lsp-lenses)
        (delete-overlay overlay)))))

(defun skyline-lsp--refresh-lenses ()
  "Ask for the lenses of this buffer, and draw them."
  (when-let* ((server (skyline-lsp--managed-p))
              (buffer (current-buffer)))
    (jsonrpc-async-request
     server :textDocument/codeLens
     (list :textDocument (eglot--TextDocumentIdentifier))
     :success-fn (lambda (lenses)
                   (when (buffer-live-p buffer)
                     (with-current-buffer buffer
                       (skyline-lsp--draw-lenses lenses))))
     ;; The next change asks again.
     :error-fn #'ignore
     :timeout-fn #'ignore
     :deferred 'skyline-lsp--refresh-lenses)))

(defun skyline-lsp--draw-lenses (lenses)
  "Draw LENSES in place of those in this buffer, each line's above it."
  (skyline-lsp--remove-lenses)
  (without-restriction
    (save-excursion
      (pcase-dolist
          (`(,line . ,on-line)
           (seq-group-by
            (lambda (lens)
              (plist-get (plist-get (plist-get lens :range) :start) :line))
            lenses))
        (goto-char (point-min))
        (forward-line line)
        (skyline-lsp--draw-line
         (seq-filter #'identity
                     (seq-map (lambda (lens) (plist-get lens :command))
                              on-line)))))))

(defun skyline-lsp--draw-line (commands)
  "Draw lenses that run COMMANDS above the line at point."
  (let ((overlay (make-overlay (point) (point)))
        (indentation (make-string (current-indentation) ?\s)))
    (overlay-put overlay 'skyline-lsp-lenses commands)
    (overlay-put
     overlay 'before-string
     (concat indentation
             (mapconcat #'skyline-lsp--lens-text commands
                        (propertize " | " 'face 'skyline-lsp-lens))
             "\n"))))

(defun skyline-lsp--lens-text (command)
  "Text of the lens for COMMAND."
  (propertize (plist-get command :title)
              'face 'skyline-lsp-lens
              'mouse-face 'highlight
              'help-echo (or (plist-get command :tooltip) "Run this lens")
              'keymap skyline-lsp-lens-map
              'skyline-lsp-command command))

(defun skyline-lsp-lenses ()
  "Commands of the lenses in this buffer, each with its line, from 1."
  (without-restriction
    (seq-mapcat
     (lambda (overlay)
       (mapcar (lambda (command)
                 (cons (line-number-at-pos (overlay-start overlay)) command))
               (overlay-get overlay 'skyline-lsp-lenses)))
     (seq-sort-by #'overlay-start #'<
                  (seq-filter
                   (lambda (overlay) (overlay-get overlay 'skyline-lsp-lenses))
                   (overlays-in (point-min) (point-max)))))))

(defun skyline-lsp-click-lens (event)
  "Run the lens that EVENT clicked."
  (interactive "e")
  (let* ((position (event-start event))
         (string (posn-string position)))
    (with-current-buffer (window-buffer (posn-window position))
      (when string
        (skyline-lsp--execute
         (get-text-property (cdr string) 'skyline-lsp-command (car string)))))))

(defun skyline-lsp-run-lens ()
  "Run one of this buffer's lenses, those at or after point first."
  (interactive nil python-mode python-ts-mode)
  (let* ((here (line-number-at-pos nil t))
         (lenses (seq-sort-by (lambda (lens) (abs (- (car lens) here)))
                              #'< (skyline-lsp-lenses)))
         (titles (mapcar (lambda (lens)
                           (cons (format "%d: %s" (car lens)
                                         (plist-get (cdr lens) :title))
                                 (cdr lens)))
                         lenses)))
    (unless titles
      (user-error "There are no lenses in this buffer"))
    (let ((title (completing-read "Lens: " titles nil t nil nil (caar titles))))
      (skyline-lsp--execute (cdr (assoc title titles))))))

(defun skyline-lsp--execute (command)
  "Run COMMAND of a lens."
  (skyline-lsp--ask (plist-get command :command)
                    (seq-first (plist-get command :arguments))
                    #'ignore))

;;; lsp-mode

;;;###autoload
(defun skyline-lsp-register ()
  "Tell lsp-mode of the server, as an add-on to others."
  (lsp-register-client
   (make-lsp-client
    :new-connection (lsp-stdio-connection (lambda () skyline-lsp-command))
    :activation-fn (lsp-activate-on "python")
    :server-id 'skyline-lsp
    :add-on? t
    :initialization-options
    (lambda () (skyline-lsp--initialization default-directory))
    :after-open-fn #'skyline-lsp--show-hints))
  (add-hook 'lsp-diagnostics-updated-hook #'skyline-lsp--refresh-all-hints))

(defun skyline-lsp--show-hints ()
  "Show hints in this buffer, which lsp-mode's server manages."
  (lsp-inlay-hints-mode 1)
  ;; The mode itself waits for the user to do something.
  (lsp-update-inlay-hints (point-min) (point-max)))

(defun skyline-lsp--refresh-all-hints ()
  "Ask for the hints of all buffers of lsp-mode's server again.
It takes no request to do so; new diagnostics tell that there is something new."
  (when-let* ((workspace (lsp-find-workspace 'skyline-lsp nil)))
    (dolist (buffer (lsp--workspace-buffers workspace))
      (when (buffer-live-p buffer)
        (with-current-buffer buffer
          (when (bound-and-true-p lsp-inlay-hints-mode)
            (lsp-update-inlay-hints (point-min) (point-max))))))))

;;; Asking the server

(defun skyline-lsp--get (object key)
  "Value of KEY, a keyword, in OBJECT, a plist or a hash table.
JSON's null and false are nil."
  (let ((value (if (hash-table-p object)
                   (gethash (substring (symbol-name key) 1) object)
                 (plist-get object key))))
    (if (memq value '(:json-false :json-null :null)) nil value)))

(defun skyline-lsp--ask (command argument callback)
  "Have the server run COMMAND with ARGUMENT, and CALLBACK with the result.
ARGUMENT is a plist; the current file is added where it names none."
  (let ((arguments (vector
                    (if (or (not buffer-file-name)
                            (skyline-lsp--get argument :path)
                            (skyline-lsp--get argument :uri))
                        (or argument (make-hash-table))
                      (append (list :path (expand-file-name buffer-file-name))
                              argument))))
        (eglot-server (skyline-lsp--managed-p))
        (workspace (and (fboundp 'lsp-find-workspace)
                        (bound-and-true-p lsp-mode)
                        (lsp-find-workspace 'skyline-lsp nil))))
    (cond
     (eglot-server
      (jsonrpc-async-request
       eglot-server :workspace/executeCommand
       (list :command command :arguments arguments)
       :success-fn callback
       :error-fn (lambda (failure)
                   (message "Skyline: %s" (plist-get failure :message)))
       ;; A prediction may have to measure first.
       :timeout nil))
     (workspace
      (let ((lsp--cur-workspace workspace))
        (lsp-request-async
         "workspace/executeCommand"
         (list :command command :arguments arguments)
         callback
         :mode 'detached
         :error-handler
         (lambda (failure)
           (message "Skyline: %s" (skyline-lsp--get failure :message))))))
     (t (user-error "Skyline does not run here; start it by M-x skyline-lsp")))))

;;; Commands

(defun skyline-lsp--read-batch-size (prompt)
  "Read a batch size with PROMPT."
  (let ((size (read-number prompt)))
    (unless (and (integerp size) (> size 0))
      (user-error "A batch size is a whole number of at least 1"))
    size))

(defun skyline-lsp--memory (bytes)
  "BYTES for the user."
  (let ((mib (/ bytes 1048576.0)))
    (if (>= mib 1024) (format "%.2f GiB" (/ mib 1024)) (format "%.0f MiB" mib))))

(defun skyline-lsp--number (value)
  "VALUE for the user, with three digits."
  (if (>= value 100) (format "%.0f" value) (format "%.3g" value)))

(defun skyline-lsp--interval (estimate show)
  "ESTIMATE with its bounds, each through SHOW."
  (let ((low (funcall show (skyline-lsp--get estimate :low)))
        (high (funcall show (skyline-lsp--get estimate :high)))
        (value (funcall show (skyline-lsp--get estimate :value))))
    (if (equal low high) value (format "%s (%s to %s)" value low high))))

(defun skyline-lsp--show-prediction (answer)
  "Show ANSWER, the prediction for a batch size."
  (if (not (skyline-lsp--get answer :runTimeMs))
      (message "Skyline: nothing to predict from yet; profile first")
    (let ((peak (skyline-lsp--get answer :peakBytes)))
      (message
       "%s"
       (string-join
        (append
         (list
          (format "Batch size %d, %s: %s ms, %s samples/s%s"
                  (skyline-lsp--get answer :batchSize)
                  (if (skyline-lsp--get answer :measured) "measured" "predicted")
                  (skyline-lsp--interval (skyline-lsp--get answer :runTimeMs)
                                         #'skyline-lsp--number)
                  (skyline-lsp--interval
                   (skyline-lsp--get answer :samplesPerSecond)
                   #'skyline-lsp--number)
                  (if peak
                      (concat ", peak "
                              (skyline-lsp--interval peak #'skyline-lsp--memory))
                    "")))
         (seq-into (skyline-lsp--get answer :problems) 'list))
        "\n")))))

(defun skyline-lsp--show-retuned (answer)
  "Show what became of a change of the batch size, from ANSWER.
Where the edit was not made, the server says so itself."
  (let ((edit (or (skyline-lsp--get answer :edit) answer)))
    (when (skyline-lsp--get edit :applied)
      (message "Skyline: batch size %s -> %s%s"
               (skyline-lsp--get edit :old) (skyline-lsp--get edit :new)
               (if-let* ((reason (skyline-lsp--get answer :reason)))
                   (concat ": " reason)
                 "")))))

;;;###autoload
(defun skyline-lsp-profile (&optional batch-size)
  "Profile the training step of this file.
With a prefix argument, ask for the BATCH-SIZE to run it with."
  (interactive (list (and current-prefix-arg
                          (skyline-lsp--read-batch-size "Batch size: "))))
  (skyline-lsp--ask "skyline.profile"
                    (and batch-size (list :batchSize batch-size)) #'ignore))

(defun skyline-lsp-cancel ()
  "End the run under way."
  (interactive)
  (skyline-lsp--ask "skyline.cancel" nil #'ignore))

(defun skyline-lsp-clear ()
  "Forget the results of this file's training step."
  (interactive)
  (skyline-lsp--ask "skyline.clear" nil #'ignore))

(defun skyline-lsp-predict (batch-size)
  "Say what BATCH-SIZE would do to run time, throughput and memory."
  (interactive (list (skyline-lsp--read-batch-size "Predict batch size: ")))
  (skyline-lsp--ask "skyline.predict" (list :batchSize batch-size)
                    #'skyline-lsp--show-prediction))

(defun skyline-lsp-set-batch-size (batch-size)
  "Write BATCH-SIZE into the source."
  (interactive (list (skyline-lsp--read-batch-size "Set batch size to: ")))
  (skyline-lsp--ask "skyline.setBatchSize" (list :batchSize batch-size)
                    #'skyline-lsp--show-retuned))

(defconst skyline-lsp--goals
  '(("throughput" . "Samples a second: ")
    ("memory" . "Peak memory, such as 6GiB or 80%: ")
    ("maxThroughput")
    ("fit"))
  "Goals of `skyline-lsp-retune', with the question for those with a value.")

(defun skyline-lsp-retune (goal &optional value)
  "Write the batch size into the source that reaches GOAL.
GOAL is \"throughput\", with VALUE in samples a second; \"memory\", with VALUE
a peak such as \"6GiB\" or \"80%\"; \"maxThroughput\", past which throughput
gains little; or \"fit\", the largest that fits in the device's memory."
  (interactive
   (let* ((goal (completing-read "Retune for: " skyline-lsp--goals nil t))
          (question (cdr (assoc goal skyline-lsp--goals))))
     (list goal (and question (read-string question)))))
  (skyline-lsp--ask "skyline.retune"
                    (append (list :goal goal) (and value (list :value value)))
                    #'skyline-lsp--show-retuned))

(defun skyline-lsp-preview (batch-size)
  "Show all figures as predicted for BATCH-SIZE; the source stays as it is."
  (interactive (list (skyline-lsp--read-batch-size "Preview batch size: ")))
  (skyline-lsp--ask "skyline.preview" (list :batchSize batch-size) #'ignore))

(defun skyline-lsp-clear-preview ()
  "Show measured figures again."
  (interactive)
  (skyline-lsp--ask "skyline.clearPreview" nil #'ignore))

(defun skyline-lsp-estimate (&optional device batch-size)
  "Say whether BATCH-SIZE fits on DEVICE, which need not be here.
DEVICE is a name such as \"A100-40GB\", or memory such as \"24GiB\"; without
it, one is asked for.  With a prefix argument, BATCH-SIZE is asked for too."
  (interactive (list nil (and current-prefix-arg
                              (skyline-lsp--read-batch-size "Batch size: "))))
  (if device
      (skyline-lsp--ask "skyline.estimate"
                        (append (list :device device)
                                (and batch-size (list :batchSize batch-size)))
                        #'skyline-lsp--show-estimate)
    (skyline-lsp--ask "skyline.devices" nil
                      (lambda (devices)
                        (skyline-lsp--choose-device devices batch-size)))))

(defun skyline-lsp--choose-device (devices batch-size)
  "Ask for one of DEVICES or another, and whether BATCH-SIZE fits on it."
  (let ((device (completing-read
                 "Device, or memory such as 24GiB: "
                 (seq-map (lambda (one) (skyline-lsp--get one :device))
                          devices))))
    (unless (string-empty-p device)
      (skyline-lsp-estimate device batch-size))))

(defun skyline-lsp--show-estimate (estimate)
  "Show ESTIMATE, the answer for a device."
  (message "Skyline: %s" (skyline-lsp--get estimate :text)))

(defun skyline-lsp-open-panel ()
  "Open the interactive page in a browser."
  (interactive)
  (skyline-lsp--ask "skyline.openPanel" nil #'ignore))

(defun skyline-lsp-sites ()
  "Go to one of the places where the batch size is written."
  (interactive)
  (skyline-lsp--ask "skyline.sites" nil #'skyline-lsp--choose-site))

(defun skyline-lsp--choose-site (sites)
  "Ask for one of SITES, and go there."
  (if (seq-empty-p sites)
      (message "Skyline: no place was found where the batch size is written")
    (let* ((choices (seq-map
                     (lambda (site)
                       (cons (format "%s:%d: %s = %s"
                                     (file-name-nondirectory
                                      (skyline-lsp--get site :path))
                                     (skyline-lsp--get site :line)
                                     (skyline-lsp--get site :name)
                                     (skyline-lsp--get site :value))
                             site))
                     sites))
           (chosen (cdr (assoc (completing-read "Batch size: " choices nil t
                                                nil nil (caar choices))
                               choices))))
      (when chosen
        (find-file (skyline-lsp--get chosen :path))
        (goto-char (point-min))
        (forward-line (1- (skyline-lsp--get chosen :line)))
        (forward-char (1- (skyline-lsp--get chosen :column)))))))

(defun skyline-lsp-choose-workload (&optional file)
  "Choose what is profiled, from now on: FILE, or one that is asked for."
  (interactive)
  (if file
      (skyline-lsp--ask "skyline.chooseWorkload"
                        (list :path (expand-file-name file)) #'ignore)
    (skyline-lsp--ask "skyline.status" nil #'skyline-lsp--choose-program)))

(defun skyline-lsp--choose-program (status)
  "Ask for one of the programs in STATUS, and have it profiled from now on."
  (let ((programs (seq-into (skyline-lsp--get status :programs) 'list)))
    (if (null programs)
        (message "Skyline: nothing to profile was found in this project")
      (skyline-lsp-choose-workload
       (expand-file-name (completing-read "Profile: " programs nil t nil nil
                                          (car programs))
                         (skyline-lsp--get status :root))))))

(defun skyline-lsp-status ()
  "Say in what state the training step of this file is."
  (interactive)
  (skyline-lsp--ask "skyline.status" nil #'skyline-lsp--show-status))

(defun skyline-lsp--show-status (status)
  "Show STATUS, the state of a training step."
  (let ((profile (skyline-lsp--get status :profile))
        (failure (skyline-lsp--get status :failure))
        (workload (skyline-lsp--get status :workload)))
    (message
     "Skyline: %s"
     (string-join
      (delq nil
            (list (and workload (skyline-lsp--get workload :path))
                  (skyline-lsp--get status :state)
                  (skyline-lsp--get status :progress)
                  (cond (failure (skyline-lsp--get failure :message))
                        (profile
                         (format "%s ms, peak %s"
                                 (skyline-lsp--number
                                  (skyline-lsp--get profile :runTimeMs))
                                 (skyline-lsp--memory
                                  (skyline-lsp--get profile :peakBytes)))))))
      ": "))))

(defvar-keymap skyline-lsp-command-map
  :doc "Skyline's commands, for a prefix key of your choice."
  "p" #'skyline-lsp-profile
  "k" #'skyline-lsp-cancel
  "c" #'skyline-lsp-clear
  "b" #'skyline-lsp-predict
  "s" #'skyline-lsp-set-batch-size
  "r" #'skyline-lsp-retune
  "v" #'skyline-lsp-preview
  "V" #'skyline-lsp-clear-preview
  "d" #'skyline-lsp-estimate
  "o" #'skyline-lsp-open-panel
  "g" #'skyline-lsp-sites
  "w" #'skyline-lsp-choose-workload
  "l" #'skyline-lsp-run-lens
  "?" #'skyline-lsp-status)

;;;###autoload (autoload 'skyline-lsp-command-map "skyline-lsp" nil t 'keymap)
(fset 'skyline-lsp-command-map skyline-lsp-command-map)

(provide 'skyline-lsp)
;;; skyline-lsp.el ends here
