/** Labels that tie pods to their job; the short names are older. */
export const NAME_LABELS = ['batch.kubernetes.io/job-name', 'job-name'];
export const UID_LABELS = ['batch.kubernetes.io/controller-uid', 'controller-uid'];
export const UID_LABEL = 'batch.kubernetes.io/controller-uid';
