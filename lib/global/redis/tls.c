/*
 * tls: see tls.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tls.h"

#define WRITE_MAX 65536

struct tls {
	SSL *ssl;
	BIO_METHOD *method;
	const int *fd;
	int error; /* of the socket, since the last call */
};

/* ---- The socket ---- */

/* Note the outcome of a call on the socket: what is not to be repeated, and why. */
static int moved(BIO *bio, ssize_t n)
{
	struct tls *tls = BIO_get_data(bio);

	if (n > 0)
		return (int)n;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -1;
	BIO_clear_retry_flags(bio);
	tls->error = n == 0 || errno == ECONNRESET ? -EPIPE : -errno;
	return -1;
}

static int socket_write(BIO *bio, const char *bytes, int len)
{
	const struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	BIO_set_retry_write(bio);
	return moved(bio, send(*tls->fd, bytes, (size_t)len, MSG_NOSIGNAL));
}

static int socket_read(BIO *bio, char *bytes, int size)
{
	const struct tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	BIO_set_retry_read(bio);
	return moved(bio, recv(*tls->fd, bytes, (size_t)size, 0));
}

static long socket_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO *new_socket(struct tls *tls)
{
	BIO *bio;

	tls->method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "shmlimit");
	if (tls->method == NULL)
		return NULL;
	BIO_meth_set_write(tls->method, socket_write);
	BIO_meth_set_read(tls->method, socket_read);
	BIO_meth_set_ctrl(tls->method, socket_control);
	bio = BIO_new(tls->method);
	if (bio != NULL) {
		BIO_set_data(bio, tls);
		BIO_set_init(bio, 1);
	}
	return bio;
}

/* ---- Certificates ---- */

static int refuse_certificate(char why[TLS_WHY_MAX], const char *what, const char *reason)
{
	snprintf(why, TLS_WHY_MAX, "%.80s%s%.70s", what, what[0] != '\0' ? ": " : "",
	         reason != NULL ? reason : "unknown error");
	ERR_clear_error();
	return -EKEYREJECTED;
}

static const char *last_reason(void)
{
	return ERR_reason_error_string(ERR_peek_last_error());
}

/* Read the files that the URL names. */
static int load(SSL_CTX *context, const struct url *url, char why[TLS_WHY_MAX])
{
	const char *key = url->key[0] != '\0' ? url->key : url->cert;
	const char *const files[] = { url->cacert, url->cert, key };

	for (int i = 0; i < 3; i++)
		if (files[i][0] != '\0' && access(files[i], R_OK) != 0)
			return refuse_certificate(why, files[i], strerrordesc_np(errno));
	if (url->cacert[0] == '\0' && SSL_CTX_set_default_verify_paths(context) != 1)
		return refuse_certificate(why, "default certificates", last_reason());
	if (url->cacert[0] != '\0' && SSL_CTX_load_verify_file(context, url->cacert) != 1)
		return refuse_certificate(why, url->cacert, last_reason());
	if (url->cert[0] != '\0' && SSL_CTX_use_certificate_chain_file(context, url->cert) != 1)
		return refuse_certificate(why, url->cert, last_reason());
	if (url->cert[0] != '\0' && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		return refuse_certificate(why, key, last_reason());
	return 0;
}

/* The certificate must have the host's name, or its address. */
static int expect(SSL *ssl, const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];
	char name[URL_HOST_SIZE]; /* OpenSSL's macro wants what is not const */

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	strcpy(name, host);
	return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

/*
 * WHY a context for each connection: files that were renewed are read again, and OpenSSL's default
 * ones are read only as far as needed.
 */
static SSL *new_ssl(const struct url *url, char why[TLS_WHY_MAX], int *error)
{
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());
	SSL *ssl = NULL;

	*error = -ENOMEM;
	if (context == NULL)
		return NULL;
	SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	*error = load(context, url, why);
	if (*error == 0)
		ssl = SSL_new(context);
	SSL_CTX_free(context);
	return ssl;
}

/* ---- What connection calls ---- */

int tls_begin(struct tls **out, const int *fd, const struct url *url, char why[TLS_WHY_MAX])
{
	struct tls *tls = calloc(1, sizeof(*tls));
	BIO *bio = NULL;
	int error = -ENOMEM;

	*out = NULL;
	if (tls == NULL)
		return -ENOMEM;
	ERR_clear_error();
	tls->fd = fd;
	tls->ssl = new_ssl(url, why, &error);
	if (tls->ssl != NULL)
		bio = new_socket(tls);
	if (bio != NULL)
		SSL_set_bio(tls->ssl, bio, bio);
	if (bio == NULL || !expect(tls->ssl, url->host)) {
		tls_end(tls);
		return error != 0 ? error : -ENOMEM;
	}
	*out = tls;
	return 0;
}

void tls_end(struct tls *tls)
{
	if (tls == NULL)
		return;
	SSL_free(tls->ssl);
	BIO_meth_free(tls->method);
	free(tls);
}

static int error_of(struct tls *tls, int result, char why[TLS_WHY_MAX])
{
	const char *reason = last_reason();
	int error = SSL_get_error(tls->ssl, result);
	long verified = SSL_get_verify_result(tls->ssl);

	ERR_clear_error();
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (tls->error != 0 || error != SSL_ERROR_SSL)
		return tls->error != 0 ? tls->error : -EPIPE;
	return refuse_certificate(why, "", verified != X509_V_OK ? X509_verify_cert_error_string(verified) : reason);
}

static void prepare(struct tls *tls)
{
	ERR_clear_error();
	tls->error = 0;
}

int tls_handshake(struct tls *tls, short *events, char why[TLS_WHY_MAX])
{
	int result;

	prepare(tls);
	result = SSL_connect(tls->ssl);
	*events = SSL_want_write(tls->ssl) ? POLLOUT : POLLIN;
	return result == 1 ? 0 : error_of(tls, result, why);
}

ssize_t tls_read(struct tls *tls, char *bytes, size_t size, char why[TLS_WHY_MAX])
{
	int n;

	prepare(tls);
	n = SSL_read(tls->ssl, bytes, (int)size);
	return n > 0 ? n : error_of(tls, n, why);
}

ssize_t tls_write(struct tls *tls, const char *bytes, size_t len, char why[TLS_WHY_MAX])
{
	int n;

	prepare(tls);
	n = SSL_write(tls->ssl, bytes, len < WRITE_MAX ? (int)len : WRITE_MAX);
	return n > 0 ? n : error_of(tls, n, why);
}

int tls_is_pending(const struct tls *tls)
{
	return tls != NULL && SSL_pending(tls->ssl) > 0;
}
