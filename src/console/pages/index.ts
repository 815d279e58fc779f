/** All pages, in the order of the navigation. The first whose path matches is shown. */
import type { Page } from '../shell/page.ts';
import { overview } from './overview/index.tsx';

export const PAGES: readonly Page[] = [overview];
