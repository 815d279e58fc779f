import type { Page } from '../../shell/page.ts';

export const overview: Page = {
  path: '/',
  title: 'Overview',
  group: 'Cluster',
  load: () => import('./page.tsx'),
};
