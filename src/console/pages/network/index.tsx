import type { Page } from '../../shell/page.ts';

export const network: Page = { path: '/network', title: 'Network', group: 'Network', load: () => import('./page.tsx') };
