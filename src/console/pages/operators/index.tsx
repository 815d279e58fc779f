import type { Page } from '../../shell/page.ts';

export const operators: Page = {
  path: '/operators',
  title: 'Operators',
  group: 'Cluster',
  load: () => import('./page.tsx'),
};
