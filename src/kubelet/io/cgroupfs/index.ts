export { createCgroupFileSystem } from './cgroup-file-system.ts';
