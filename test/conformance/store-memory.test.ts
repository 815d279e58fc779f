import { createMemoryStore } from './memory-store.ts';
import { storeConformance } from './store.ts';

storeConformance({ name: 'array of revisions', open: async () => createMemoryStore() });
