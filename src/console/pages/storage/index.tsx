import type { Page } from '../../shell/page.ts';

export const storage: Page = {
  path: '/storage',
  title: 'Storage and images',
  group: 'Storage',
  load: () => import('./page.tsx'),
};
