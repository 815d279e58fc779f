/** Registered pages. */
import type { ComponentType } from 'preact';

/** Groups of the navigation, in this order. */
export const GROUPS = ['Cluster', 'Workloads', 'Network', 'Storage', 'Configuration', 'Hosts', 'More'] as const;
export type PageGroup = (typeof GROUPS)[number];

export interface PageProps {
  /** Values of the `:name` segments of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

export interface Page {
  /** Pattern below `/console`, such as `/nodes/:name`; see `matchPath`. */
  readonly path: string;
  readonly title: string;
  /** Undefined: the page is not in the navigation. */
  readonly group: PageGroup | undefined;
  /** Loads the page's code, `() => import('./page.tsx')`. */
  load(): Promise<{ readonly default: ComponentType<PageProps> }>;
}
