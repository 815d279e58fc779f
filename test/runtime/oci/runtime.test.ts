import { runtimeConformance } from '../../conformance/runtime.ts';
import { createRuntimeLab } from './lab.ts';
import { inOwnNetworkNamespace } from './netns.ts';

inOwnNetworkNamespace(import.meta.url, () => {
  runtimeConformance('embedded (runc and conmon)', () => createRuntimeLab());
});
