/** Parses and writes manifests as YAML text. This module is part of the editor's chunk. */
import { parseAllDocuments, stringify } from 'yaml';
import type { KubeObject } from '../../../api/meta/object.ts';

export interface YamlProblem {
  /** Line number, counted from 1. */
  readonly line: number;
  readonly message: string;
}

/** Text of one document and its position. */
export interface Place {
  readonly text: string;
  /** Line of the whole text at which the document begins, counted from 1. */
  readonly line: number;
}

export interface Manifests {
  readonly manifests: readonly KubeObject[];
  /** Texts and positions of the manifests, in the same order. */
  readonly places: readonly Place[];
  readonly problems: readonly YamlProblem[];
}

/** Parses documents separated by `---`. Aliases are limited, so that a small text cannot become a large object. */
export function parseManifests(text: string): Manifests {
  const manifests: KubeObject[] = [];
  const places: Place[] = [];
  const problems: YamlProblem[] = [];
  const documents = parseAllDocuments(text, { uniqueKeys: true, merge: false });
  for (const document of Array.isArray(documents) ? documents : []) {
    for (const { linePos, message } of document.errors)
      problems.push({ line: linePos?.[0].line ?? 1, message: message.split('\n')[0] ?? message });
    if (document.errors.length > 0 || document.contents === null) continue;
    const line = text.slice(0, document.range[0]).split('\n').length;
    try {
      const value: unknown = document.toJS({ maxAliasCount: 100 });
      const problem = problemOf(value);
      if (problem === undefined) {
        manifests.push(value as KubeObject);
        places.push({ text: text.slice(document.range[0], document.range[1]), line });
      } else problems.push({ line, message: problem });
    } catch (error) {
      problems.push({ line, message: error instanceof Error ? error.message : String(error) });
    }
  }
  if (manifests.length === 0 && problems.length === 0) problems.push({ line: 1, message: 'The text has no object.' });
  return { manifests, places, problems };
}

function problemOf(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'An object is expected.';
  const { apiVersion, kind, metadata } = value as { apiVersion?: unknown; kind?: unknown; metadata?: unknown };
  if (typeof apiVersion !== 'string' || apiVersion === '') return 'apiVersion: is missing.';
  if (typeof kind !== 'string' || kind === '') return 'kind: is missing.';
  const name = typeof metadata === 'object' && metadata !== null && 'name' in metadata ? metadata.name : undefined;
  return typeof name === 'string' && name !== '' ? undefined : 'metadata.name: is missing.';
}

export const yamlOf = (object: unknown): string => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false });
