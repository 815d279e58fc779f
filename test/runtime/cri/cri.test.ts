import { test } from 'node:test';
import { runtimeConformance } from '../../conformance/runtime.ts';
import { inOwnNetworkNamespace } from '../oci/netns.ts';
import { createContainerdLab, whyNoContainerd } from './containerd.ts';

/** Cases of the port's test suite that CRI, or containerd 1.6, does not support. */
const OLD_STREAMS = 'containerd 1.6 serves WebSocket protocol v4, which cannot end the input';
const LACKS: Readonly<Record<string, string>> = {
  'leaves out the groups of the image where only those of the pod are wanted':
    'containerd 1.6 does not know the policy (KEP-3619); such a container is refused',
  'streams a command: input to its end, large output, separate errors': OLD_STREAMS,
  'attaches to a container: input once, output, end': OLD_STREAMS,
  'kills a command when its client leaves': 'containerd keeps a command running whose client has left',
};

const why = whyNoContainerd();
if (why !== undefined) test('the runtime port over the container runtime interface', { skip: why }, () => {});
else
  inOwnNetworkNamespace(import.meta.url, () => {
    runtimeConformance('containerd over CRI', createContainerdLab, LACKS);
  });
