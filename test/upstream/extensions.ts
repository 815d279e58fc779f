/**
 * `node test/upstream/extensions.ts APIEXTENSIONS-APISERVER [--report FILE] [PART ...]` sends the same definitions and
 * custom resources to upstream's apiextensions-apiserver and to this project's server, and lists every difference.
 *
 * It is not part of `npm test`, because upstream's executable must be built first (k8s.io/apiextensions-apiserver). It
 * needs an `etcd` in the path.
 */
import { judge } from './api/judge.ts';
import { startExtensionsPair } from './api/pair.ts';
import { PARTS } from './extensions/parts.ts';

await judge(import.meta.filename, 'APIEXTENSIONS-APISERVER', PARTS, startExtensionsPair);
