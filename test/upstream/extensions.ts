/**
 * `node test/upstream/extensions.ts APIEXTENSIONS-APISERVER [--report FILE] [PART ...]`: the same definitions and custom resources to upstream's
 * own server of custom resources and to ours, every difference listed.
 *
 * Not part of `npm test`: upstream's executable has to be built first (k8s.io/apiextensions-apiserver), and an `etcd` found.
 */
import { judge } from './api/judge.ts';
import { startExtensionsPair } from './api/pair.ts';
import { PARTS } from './extensions/parts.ts';

await judge(import.meta.filename, 'APIEXTENSIONS-APISERVER', PARTS, startExtensionsPair);
