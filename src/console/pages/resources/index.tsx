import type { Page } from '../../shell/page.ts';

export const resources: readonly Page[] = [
  { path: '/resources', title: 'Any resource', group: 'More', load: () => import('./page.tsx') },
  {
    path: '/resources/:group/:version/:plural',
    title: 'Resource',
    group: undefined,
    parent: () => ({ path: '/resources', title: 'Any resource' }),
    load: () => import('./table.tsx'),
  },
  {
    path: '/resources/:group/:version/:plural/:name',
    title: 'Object',
    group: undefined,
    parent: ({ group = '', version = '', plural = '' }) => ({
      path: `/${['resources', group, version, plural].map(encodeURIComponent).join('/')}`,
      title: plural,
    }),
    load: () => import('./object.tsx'),
  },
];
