/** All pages, in the order of the navigation. The first page whose path matches the location is shown. */
import type { Page } from '../shell/page.ts';
import { configuration } from './configuration/index.tsx';
import { hosts } from './hosts/index.tsx';
import { network } from './network/index.tsx';
import { nodes } from './nodes/index.tsx';
import { operators } from './operators/index.tsx';
import { overview } from './overview/index.tsx';
import { pod } from './pod/index.tsx';
import { resources } from './resources/index.tsx';
import { rigs } from './rigs/index.tsx';
import { storage } from './storage/index.tsx';
import { workloads } from './workloads/index.tsx';

export const PAGES: readonly Page[] = [
  overview,
  ...nodes,
  operators,
  ...workloads,
  pod,
  network,
  storage,
  ...configuration,
  hosts,
  ...rigs,
  ...resources,
];
