/**
 * Turns for others between the steps of a large write. Each step is one pass over the object, a few tens of milliseconds for the largest there are; all of
 * them without a pause would hold up everybody for as long as they take together.
 */
import { setImmediate } from 'node:timers/promises';

const LARGE = 128 * 1024;

export const isLarge = (bytes = 0): boolean => bytes >= LARGE;

/** Resolves when others have had their turn. */
export const giveTurn = (): Promise<void> => setImmediate();
