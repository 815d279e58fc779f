export { createKubeletFiles } from './kubelet-files.ts';
export { runVolumeCall } from './volume-call.ts';
