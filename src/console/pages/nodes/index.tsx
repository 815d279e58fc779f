import type { Page } from '../../shell/page.ts';

export const nodes: readonly Page[] = [
  { path: '/nodes', title: 'Nodes', group: 'Cluster', load: () => import('./page.tsx') },
  { path: '/nodes/:name', title: 'Node', group: undefined, load: () => import('./node.tsx') },
];
