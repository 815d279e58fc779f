import type { Page } from '../../shell/page.ts';

export const workloads: readonly Page[] = [
  { path: '/workloads', title: 'Workloads', group: 'Workloads', load: () => import('./page.tsx') },
  { path: '/pods', title: 'Pods', group: 'Workloads', load: () => import('./pods.tsx') },
  { path: '/create', title: 'Create', group: 'Workloads', load: () => import('./create.tsx') },
  {
    path: '/workloads/:kind/:namespace/:name',
    title: 'Workload',
    group: undefined,
    parent: ({ kind = '' }) => ({ path: `/workloads?kind=${encodeURIComponent(kind)}`, title: 'Workloads' }),
    load: () => import('./workload.tsx'),
  },
];
