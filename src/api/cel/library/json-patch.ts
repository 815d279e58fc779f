/** Function `jsonpatch.escapeKey`. Source: k8s.io/apiserver/pkg/cel/library/jsonpatch.go, RFC 6901. */
import { declareIn, type Overload, perCharacter } from '../functions.ts';

export const jsonPatches: readonly Overload[] = [
  declareIn(
    'jsonpatch',
    'escapeKey(string): string',
    (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1'),
    { cost: ([key = 0]) => perCharacter(key), size: ([key = 0]) => key * 2 },
  ),
];
