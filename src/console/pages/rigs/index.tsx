import type { Page } from '../../shell/page.ts';

export const rigs: readonly Page[] = [
  { path: '/rigs', title: 'Rigs', group: 'Hosts', load: () => import('./page.tsx') },
  {
    path: '/rigs/:name',
    title: 'Rig',
    group: undefined,
    parent: () => ({ path: '/rigs', title: 'Rigs' }),
    load: () => import('./rig.tsx'),
  },
  {
    path: '/rigclaims/:namespace/:name',
    title: 'Rig claim',
    group: undefined,
    parent: () => ({ path: '/rigs?view=rigclaims', title: 'Rig claims' }),
    load: () => import('./rig.tsx'),
  },
];
