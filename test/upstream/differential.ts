/**
 * `node test/upstream/differential.ts KUBE-APISERVER [--report FILE] [PART ...]` sends the same requests to upstream's
 * kube-apiserver and to this project's, and lists every difference.
 *
 * It is not part of `npm test`, because upstream's executable must be built first. The results need review: a
 * difference is a defect here unless a current Kubernetes release responds as this server does.
 */
import { judge } from './api/judge.ts';
import { startPair } from './api/pair.ts';
import { PARTS } from './api/parts.ts';

await judge(import.meta.filename, 'KUBE-APISERVER', PARTS, startPair);
