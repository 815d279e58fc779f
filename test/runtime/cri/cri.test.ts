import { test } from 'node:test';
import { runtimeConformance } from '../../conformance/runtime.ts';
import { inOwnNetworkNamespace } from '../oci/netns.ts';
import { createContainerdLab, whyNoContainerd } from './containerd.ts';

const OLD_STREAMS = 'containerd 1.6 serves WebSocket protocol v4, which cannot end the input';
/** Titles of cases in test/conformance/runtime.ts that CRI, or containerd 1.6, does not support, with the reasons. */
const LACKS: Readonly<Record<string, string>> = {
  "omits the image's groups if only the pod's are requested":
    'containerd 1.6 does not know the policy (KEP-3619); such a container is rejected',
  'streams a command with input until its end, large output and separate errors': OLD_STREAMS,
  'attaches to a container with stdinOnce, and returns its output until its end': OLD_STREAMS,
  'kills a command when its client disconnects': 'containerd keeps a command running whose client has disconnected',
};

const why = whyNoContainerd();
if (why !== undefined)
  test('the container runtime interface satisfies the conformance tests of the runtime port', { skip: why }, () => {});
else
  inOwnNetworkNamespace(import.meta.url, () => {
    runtimeConformance('containerd over CRI', createContainerdLab, LACKS);
  });
