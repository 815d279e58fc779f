import type { Page } from '../../shell/page.ts';

export const resources: readonly Page[] = [
  { path: '/resources', title: 'Any resource', group: 'More', load: () => import('./page.tsx') },
  {
    path: '/resources/:group/:version/:plural',
    title: 'Resource',
    group: undefined,
    load: () => import('./table.tsx'),
  },
  {
    path: '/resources/:group/:version/:plural/:name',
    title: 'Object',
    group: undefined,
    load: () => import('./object.tsx'),
  },
];
