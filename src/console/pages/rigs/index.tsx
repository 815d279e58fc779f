import type { Page } from '../../shell/page.ts';

export const rigs: readonly Page[] = [
  { path: '/rigs', title: 'Rigs', group: 'Hosts', load: () => import('./page.tsx') },
  { path: '/rigs/:name', title: 'Rig', group: undefined, load: () => import('./rig.tsx') },
  { path: '/rigclaims/:namespace/:name', title: 'Rig claim', group: undefined, load: () => import('./rig.tsx') },
];
