/**
 * Ports for probes beyond the API. Implemented by `src/openshift/operators/cluster-operators/io` and by the
 * administration of the store.
 */
import type { HostProbe } from '../../../api/kinds/nodes/nodes/host-report.ts';
import type { EtcdFact } from './core/facts.ts';

/** Rejects with the reason, or when the signal aborts. The reason stays constant while the fault lasts. */
export type Probe = (signal: AbortSignal) => Promise<void>;

/** Probes of the components that this host runs. */
export type HostProbes = ReadonlyMap<HostProbe, Probe>;

/** Current members of the store. Rejects when no member responds. */
export type ProbeStore = () => Promise<EtcdFact>;

/**
 * Allows the store to write data that earlier releases cannot read, so that no host can return to them. Resolves with
 * false while a member still runs an earlier release.
 */
export type CommitStore = () => Promise<boolean>;
