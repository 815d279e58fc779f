/**
 * Image patterns of credential providers. Source: k8s.io/kubelet/config/v1 `matchImages`,
 * k8s.io/kubernetes/pkg/credentialprovider URLsMatch.
 */

/**
 * Whether a pattern matches an image. Both have the form `host[:port][/path]`. `*` matches any characters within one
 * label of the host name. The path of the pattern is a prefix.
 */
export function matchesImage(pattern: string, image: string): boolean {
  const [wanted, given] = [partsOf(pattern), partsOf(image)];
  if (wanted.port !== given.port) return false;
  const [labels, others] = [wanted.host.split('.'), given.host.split('.')];
  if (labels.length !== others.length || !labels.every((label, index) => matchesLabel(label, others[index] ?? '')))
    return false;
  return given.path.startsWith(wanted.path);
}

function matchesLabel(pattern: string, label: string): boolean {
  const star = pattern.indexOf('*');
  if (star < 0) return pattern === label;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return label.length >= head.length + tail.length && label.startsWith(head) && label.endsWith(tail);
}

function partsOf(text: string): { readonly host: string; readonly port: string; readonly path: string } {
  const plain = text.replace(/^https?:\/\//, '');
  const slash = plain.indexOf('/');
  const authority = slash < 0 ? plain : plain.slice(0, slash);
  const colon = authority.lastIndexOf(':');
  return {
    host: colon < 0 ? authority : authority.slice(0, colon),
    port: colon < 0 ? '' : authority.slice(colon + 1),
    path: slash < 0 ? '' : plain.slice(slash),
  };
}

/** Adds the default registry and removes tag and digest: `docker.io/library/x` for `x:1`. */
export function registryImage(image: string): string {
  const first = image.split('/', 1)[0] ?? '';
  const named = image.includes('/') && /[.:]|^localhost$/.test(first);
  const whole = named ? image : `docker.io/${image.includes('/') ? '' : 'library/'}${image}`;
  return whole.replace(/@.*$/, '').replace(/:[^/:]*$/, '');
}
