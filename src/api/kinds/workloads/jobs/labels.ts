/** Labels that link pods to their job. The names without a prefix are the older ones. */
export const NAME_LABELS = ['batch.kubernetes.io/job-name', 'job-name'];
export const UID_LABELS = ['batch.kubernetes.io/controller-uid', 'controller-uid'];
export const UID_LABEL = 'batch.kubernetes.io/controller-uid';
