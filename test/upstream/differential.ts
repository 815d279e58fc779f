/**
 * `node test/upstream/differential.ts KUBE-APISERVER [--report FILE] [PART ...]`: the same requests to upstream's kube-apiserver and to ours, every difference listed.
 *
 * Not part of `npm test`: upstream's executable has to be built first. What comes out needs judging, since upstream's is a version of its own:
 * a difference is ours to mend unless a current Kubernetes answers as we do.
 */
import { judge } from './api/judge.ts';
import { startPair } from './api/pair.ts';
import { PARTS } from './api/parts.ts';

await judge(import.meta.filename, 'KUBE-APISERVER', PARTS, startPair);
