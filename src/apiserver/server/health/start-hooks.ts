/**
 * Post-start hooks of kube-apiserver 1.36 with its default feature gates. Each hook reports the step of this server's
 * start that does the work of the hook. Source: AddPostStartHook in pkg/controlplane, k8s.io/apiserver,
 * apiextensions-apiserver and kube-aggregator.
 */
import type { HealthCheck } from './health.ts';

export type StartStep =
  | 'caches'
  | 'policy'
  | 'flow-objects'
  | 'fairness'
  | 'service-range'
  | 'service-addresses'
  | 'masters'
  | 'identity-leases'
  | 'token-tracking'
  | 'authentication-map'
  | 'api-services'
  | 'all';

/** `all`: the hook has no step of its own and completes with the start. */
const HOOKS: Readonly<Record<string, StartStep>> = {
  'poststarthook/start-apiserver-admission-initializer': 'all',
  'poststarthook/generic-apiserver-start-informers': 'caches',
  'poststarthook/priority-and-fairness-config-consumer': 'fairness',
  'poststarthook/priority-and-fairness-filter': 'fairness',
  'poststarthook/storage-object-count-tracker-hook': 'caches',
  'poststarthook/storage-readiness': 'caches',
  'poststarthook/peer-endpoint-reconciler-controller': 'masters',
  'poststarthook/start-kube-apiserver-identity-lease-controller': 'identity-leases',
  'poststarthook/start-kube-apiserver-identity-lease-garbage-collector': 'identity-leases',
  'poststarthook/start-legacy-token-tracking-controller': 'token-tracking',
  'poststarthook/start-apiextensions-informers': 'caches',
  'poststarthook/start-apiextensions-controllers': 'caches',
  'poststarthook/crd-informer-synced': 'caches',
  'poststarthook/start-system-namespaces-controller': 'policy',
  'poststarthook/start-cluster-authentication-info-controller': 'authentication-map',
  'poststarthook/start-service-ip-repair-controllers': 'service-addresses',
  'poststarthook/rbac/bootstrap-roles': 'policy',
  'poststarthook/scheduling/bootstrap-system-priority-classes': 'policy',
  'poststarthook/priority-and-fairness-config-producer': 'flow-objects',
  'poststarthook/bootstrap-controller': 'masters',
  'poststarthook/start-kubernetes-service-cidr-controller': 'service-range',
  'poststarthook/aggregator-reload-proxy-client-cert': 'all',
  'poststarthook/start-kube-aggregator-informers': 'caches',
  'poststarthook/apiservice-status-local-available-controller': 'api-services',
  'poststarthook/apiservice-status-remote-available-controller': 'api-services',
  'poststarthook/apiservice-registration-controller': 'api-services',
  'poststarthook/apiservice-discovery-controller': 'api-services',
  'poststarthook/kube-apiserver-autoregistration': 'api-services',
  'autoregister-completion': 'api-services',
  'poststarthook/apiservice-openapi-controller': 'api-services',
  'poststarthook/apiservice-openapiv3-controller': 'api-services',
};

/** Steps of the start that are complete. */
export class StartProgress {
  readonly #complete = new Set<StartStep>();

  complete(step: StartStep): void {
    this.#complete.add(step);
  }

  /** Completes the step when its work resolves. */
  async track(step: StartStep, work: Promise<unknown>): Promise<void> {
    await work;
    this.complete(step);
  }

  checks(): HealthCheck[] {
    return Object.entries(HOOKS).map(([name, step]) => ({
      name,
      check: () => {
        if (!this.#complete.has(step)) throw new Error('not finished');
      },
    }));
  }
}
