/**
 * Names by which API server, approver and host recognize a node whose client certificate has expired. Decision 0018.
 */

/** Group of a node with an expired client certificate. Such a node is not in `system:nodes`. */
export const EXPIRED_NODES_GROUP = 'system:expired-nodes';

/**
 * Annotation of a Node with the key of its current client certificate, and user extra of a node whose certificate has
 * expired. The value is `sha256:` and the hex SHA-256 of the certificate's SubjectPublicKeyInfo.
 */
export const CLIENT_KEY = 'hyperedge.dev/client-key';
