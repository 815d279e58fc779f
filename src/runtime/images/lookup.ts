/** Read-only queries of the store, for processes that must not write to it. */

import { join } from 'node:path';
import { decodeJson, fields, nullable, object, optional } from '../../base/decode.ts';
import type { Trees } from '../directory-removal/port.ts';
import { readImage, readRef, storeLayout } from './layout.ts';
import { parseReference } from './reference.ts';

export interface FoundImage {
  readonly id: string;
  /** Directories of the unpacked layers, topmost first. */
  readonly layers: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
}

/** Returns undefined if the image is not in the store. Throws RuntimeError 'image-invalid-name'. */
export async function findImage(root: string, trees: Trees, image: string): Promise<FoundImage | undefined> {
  const layout = storeLayout(root, '', trees);
  const ref = await readRef(layout, parseReference(image).name);
  const stored = ref === undefined ? undefined : await readImage(layout, ref.id);
  if (stored === undefined) return undefined;
  return {
    id: stored.id,
    layers: stored.layers.map((each) => join(layout.layers, each)),
    labels: labelsOf(stored.raw),
  };
}

const LABELLED = object({ config: optional(object({ Labels: optional(nullable(fields)) })) });

function labelsOf(raw: string | undefined): Record<string, string> {
  try {
    const { config } = decodeJson(LABELLED, raw ?? '{}', 'image');
    const labels = config?.Labels ?? {};
    return Object.fromEntries(
      Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}
