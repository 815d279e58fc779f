import type { Page } from '../../shell/page.ts';

export const configuration: readonly Page[] = [
  { path: '/configuration', title: 'Configuration', group: 'Configuration', load: () => import('./page.tsx') },
  {
    path: '/secrets/:namespace/:name',
    title: 'Secret',
    group: undefined,
    parent: () => ({ path: '/configuration?view=secrets', title: 'Secrets' }),
    load: () => import('./secret.tsx'),
  },
  { path: '/who-can', title: 'Who can', group: 'Configuration', load: () => import('./who-can.tsx') },
  { path: '/what-can', title: 'What can', group: 'Configuration', load: () => import('./what-can.tsx') },
];
