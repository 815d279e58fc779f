/** Supported version skew between components. Source: kubernetes.io "Version Skew Policy". */

/** Maximum number of minor versions by which a kubelet may be older than the API server. */
const KUBELET_MINORS = 3;
/** Maximum number of minor versions by which the API servers of a cluster may differ. */
const API_SERVER_MINORS = 1;

const VERSION = /^v?(\d+)\.(\d+)(?:\.|$)/;

/** Minor versions by which `version` is newer than `than`; undefined if one cannot be parsed. */
function minorsAhead(version: string, than: string): number | undefined {
  const [own, other] = [VERSION.exec(version), VERSION.exec(than)];
  if (own === null || other === null) return undefined;
  // Minor versions of different major versions cannot be compared, so the result is ±Infinity.
  const majors = Number(own[1]) - Number(other[1]);
  return majors === 0 ? Number(own[2]) - Number(other[2]) : majors * Number.POSITIVE_INFINITY;
}

/** Reason why the kubelet is too new to register with the API server; undefined if it may register. */
export function newerKubelet(kubelet: string, apiServer: string): string | undefined {
  const ahead = minorsAhead(kubelet, apiServer);
  if (ahead === undefined || ahead <= 0) return undefined;
  return `kubelet ${kubelet} is newer than API server ${apiServer}; upgrade the masters first`;
}

/** Maximum number of minor versions by which a kubelet may be older if the cluster is to be upgraded. */
const UPGRADEABLE_MINORS = 2;

/**
 * Version skew of a kubelet as a reason in conditions and events. Source: isKubeletSkewSupported in
 * pkg/operator/status.go of openshift/machine-config-operator.
 */
export function kubeletSkewState(
  kubelet: string,
  apiServer: string,
): 'KubeletSkewSupported' | 'KubeletSkewPresent' | 'KubeletSkewUnsupported' | 'KubeletSkewUnchecked' {
  const ahead = minorsAhead(kubelet, apiServer);
  if (ahead === undefined) return 'KubeletSkewUnchecked';
  if (ahead === 0) return 'KubeletSkewSupported';
  return ahead < 0 && ahead >= -UPGRADEABLE_MINORS ? 'KubeletSkewPresent' : 'KubeletSkewUnsupported';
}

/**
 * Reason why the kubelet is incompatible with the API server; undefined if it is compatible or a version cannot be
 * parsed.
 */
export function kubeletSkew(kubelet: string, apiServer: string): string | undefined {
  const ahead = minorsAhead(kubelet, apiServer);
  if (ahead === undefined) return undefined;
  if (ahead > 0) return newerKubelet(kubelet, apiServer);
  if (ahead < -KUBELET_MINORS) {
    return `kubelet ${kubelet} is more than ${KUBELET_MINORS} minor versions older than API server ${apiServer}; upgrade this host`;
  }
  return undefined;
}

/**
 * Reason why an API server of version `own` must not join a cluster with an API server of version `other`; undefined if
 * it may join.
 */
export function apiServerSkew(own: string, other: string): string | undefined {
  const ahead = minorsAhead(own, other);
  if (ahead === undefined || Math.abs(ahead) <= API_SERVER_MINORS) return undefined;
  return `API server ${own} and API server ${other} differ by more than ${API_SERVER_MINORS} minor version; use the same release on all masters`;
}
