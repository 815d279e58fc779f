import type { Page } from '../../shell/page.ts';

export const rigs: Page = { path: '/rigs', title: 'Rigs', group: 'Hosts', load: () => import('./page.tsx') };
