import type { Page } from '../../shell/page.ts';

export const nodes: readonly Page[] = [
  { path: '/nodes', title: 'Nodes', group: 'Cluster', load: () => import('./page.tsx') },
  {
    path: '/nodes/:name',
    title: 'Node',
    group: undefined,
    parent: () => ({ path: '/nodes', title: 'Nodes' }),
    load: () => import('./node.tsx'),
  },
];
