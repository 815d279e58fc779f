import type { Page } from '../../shell/page.ts';

export const pod: Page = {
  path: '/pods/:namespace/:name',
  title: 'Pod',
  group: undefined,
  load: () => import('./page.tsx'),
};
