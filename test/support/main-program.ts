/** The program that tests start: the bundle that `npm test` makes, which loads in half the time, or the source. */
import { fileURLToPath } from 'node:url';

export const MAIN = process.env['HYPEREDGE_TEST_MAIN'] ?? fileURLToPath(new URL('../../src/main.ts', import.meta.url));
