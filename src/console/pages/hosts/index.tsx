import type { Page } from '../../shell/page.ts';

export const hosts: Page = {
  path: '/hosts',
  title: 'Hosts and updates',
  group: 'Hosts',
  load: () => import('./page.tsx'),
};
