export { createImageStore, type ImageStore, type ImageStoreDeps, type ImportedImage } from './store.ts';
