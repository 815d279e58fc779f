import type { Page } from '../../shell/page.ts';

export const pod: Page = {
  path: '/pods/:namespace/:name',
  title: 'Pod',
  group: undefined,
  parent: () => ({ path: '/pods', title: 'Pods' }),
  load: () => import('./page.tsx'),
};
