/** Types of registered pages. */
import type { ComponentType } from 'preact';

/** Groups of the navigation, in the order in which they are shown. */
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
  /** Group in the navigation; undefined if the page is not part of it. */
  readonly group: PageGroup | undefined;
  /** Path and title of the list that contains the object of this page; undefined for pages of the navigation. */
  parent?(params: PageProps['params']): { readonly path: string; readonly title: string };
  /** Loads the page's code, for example `() => import('./page.tsx')`. */
  load(): Promise<{ readonly default: ComponentType<PageProps> }>;
}
