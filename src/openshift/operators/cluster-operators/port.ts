/**
 * Ports for probes that do not use the Kubernetes API. Implemented by `src/openshift/operators/cluster-operators/io`
 * and by the administration of the store.
 */
import type { HostProbe } from '../../../api/kinds/nodes/nodes/host-report.ts';
import type { EtcdFact } from './core/facts.ts';

/** Rejects with the reason if the probe fails or the signal aborts. The reason stays the same while the fault lasts. */
export type Probe = (signal: AbortSignal) => Promise<void>;

/** Probes of the components that this host runs. */
export type HostProbes = ReadonlyMap<HostProbe, Probe>;

/** Returns the current members of the store. Rejects if no member responds. */
export type ProbeStore = () => Promise<EtcdFact>;

/**
 * Allows the store to write data that earlier releases cannot read. After that, no host can return to an earlier
 * release. Resolves with false while a member still runs an earlier release.
 */
export type CommitStore = () => Promise<boolean>;
