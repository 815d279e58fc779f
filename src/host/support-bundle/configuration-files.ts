/** Files of an installation that a bundle contains, by their names. */

const CONFIGURATION =
  /\.(?:ya?ml|json|conf|conflist|kubeconfig|toml|ini|cfg|env)$|\.env\.|\/sysconfig\/|\/cluster-id$/i;
const PRIVATE = /keyring|encryption-config|\/certificates\/|htpasswd/i;
const PUBLIC = /\.(?:crt|pem|pub|csr|srl)$/i;

/**
 * Whether a file is configuration. Other files are omitted, because an administrator may store a password in a file of
 * any name, to which a field such as `bindPasswordFile` refers.
 */
export const isConfiguration = (path: string): boolean => CONFIGURATION.test(path) && !PRIVATE.test(path);

/** Whether the whole content of a file may be a secret. */
export const isSecretFile = (path: string): boolean =>
  !CONFIGURATION.test(path) && !PRIVATE.test(path) && !PUBLIC.test(path);
