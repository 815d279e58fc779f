/** Palette source for objects. Searches when the user pauses typing, and cancels the search for an earlier text. */
import type { FoundObject } from '../data/api/search.ts';
import type { PaletteEntry, PaletteSource } from './palette.tsx';

const PAUSE_MS = 200;

export type Find = (text: string, signal: AbortSignal) => Promise<readonly FoundObject[]>;

export function objectSource(find: Find, pageOf: (found: FoundObject) => string): PaletteSource {
  let current: AbortController | undefined;
  return async (text) => {
    current?.abort();
    const own = new AbortController();
    current = own;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    if (own.signal.aborted) return [];
    const found = await find(text, own.signal);
    return own.signal.aborted ? [] : found.map((each) => entryOf(each, pageOf(each)));
  };
}

const entryOf = ({ type, name, namespace }: FoundObject, target: string): PaletteEntry => ({
  label: namespace === '' ? name : `${namespace}/${name}`,
  hint: type.kind,
  target,
});
