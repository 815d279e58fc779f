/**
 * Name of an nftables table by which the watch recognizes this program's transactions. Each of them adds and deletes
 * the table, so it never exists after a transaction.
 */
export const OWN_MARK = 'inet hyperedge-own';

/** The nft commands of `program` with the mark of this program's transactions. */
export const ownTransaction = (program: string): string =>
  `add table ${OWN_MARK}\ndelete table ${OWN_MARK}\n${program}`;
