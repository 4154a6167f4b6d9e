import java.net.URI;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/**
 * A broker's side of MSK's IAM logins: takes tokens that are presigned requests of kafka-cluster:Connect, and checks each part of them, the signature with
 * the secrets that it was given. Session tokens "until-MS" are refused from that time on.
 *
 * <p>Options of the login module on the broker: region="eu-west-1" key_NAME="secret" (access key NAME). A refusal is a line "MskLogin: refused: why" on
 * standard error, a login "MskLogin: taken: KEY seconds-left".
 */
public class MskLogin implements AuthenticateCallbackHandler {
  private final Map<String, String> options = new TreeMap<>();

  @Override
  public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
    for (var e : entries) e.getOptions().forEach((k, v) -> options.put(k, String.valueOf(v)));
  }

  @Override
  public void close() {}

  @Override
  public void handle(Callback[] callbacks) {
    for (Callback c : callbacks) {
      if (!(c instanceof OAuthBearerValidatorCallback v)) continue;
      try {
        v.token(check(v.tokenValue()));
      } catch (Exception e) {
        System.err.println("MskLogin: refused: " + e.getMessage());
        v.error("invalid_token", null, null);
      }
    }
  }

  private static void must(boolean ok, String what) {
    if (!ok) throw new IllegalArgumentException(what);
  }

  private static byte[] hmac(byte[] key, String text) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
  }

  private static String sha(String text) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8)));
  }

  private static String encode(String s) {
    return URLEncoder.encode(s, StandardCharsets.UTF_8).replace("+", "%20").replace("*", "%2A").replace("%7E", "~");
  }

  private OAuthBearerToken check(String value) throws Exception {
    must(!value.contains("="), "padding");
    URI uri = new URI(new String(Base64.getUrlDecoder().decode(value), StandardCharsets.US_ASCII));
    String region = options.get("region");
    must("https".equals(uri.getScheme()) && ("kafka." + region + ".amazonaws.com").equals(uri.getRawAuthority()) && "/".equals(uri.getRawPath()), "host " + uri.getRawAuthority());
    Map<String, String> q = new TreeMap<>();
    for (String pair : uri.getRawQuery().split("&")) {
      int eq = pair.indexOf('=');
      must(q.put(URLDecoder.decode(pair.substring(0, eq), StandardCharsets.UTF_8), URLDecoder.decode(pair.substring(eq + 1), StandardCharsets.UTF_8)) == null, "twice: " + pair);
    }
    must("kafka-cluster:Connect".equals(q.get("Action")), "Action");
    must("AWS4-HMAC-SHA256".equals(q.get("X-Amz-Algorithm")), "Algorithm");
    must("host".equals(q.get("X-Amz-SignedHeaders")), "SignedHeaders");
    must("900".equals(q.get("X-Amz-Expires")), "Expires");
    must(q.containsKey("User-Agent"), "User-Agent");
    String when = q.get("X-Amz-Date");
    Instant signed = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'").withZone(ZoneOffset.UTC).parse(when, Instant::from);
    Instant ends = signed.plusSeconds(900);
    must(Duration.between(signed, Instant.now()).abs().toMinutes() < 5, "clock " + when);
    String[] scope = q.get("X-Amz-Credential").split("/");
    must(scope.length == 5 && scope[1].equals(when.substring(0, 8)) && scope[2].equals(region) && scope[3].equals("kafka-cluster") && scope[4].equals("aws4_request"), "scope");
    String session = q.getOrDefault("X-Amz-Security-Token", "");
    must(!session.startsWith("until-") || Long.parseLong(session.substring(6)) > System.currentTimeMillis(), "expired credentials");
    String secret = options.get("key_" + scope[0]);
    must(secret != null, "unknown access key " + scope[0]);
    List<String> canonical = new ArrayList<>();
    q.forEach((k, v) -> {
      if (!k.equals("X-Amz-Signature") && !k.equals("User-Agent")) canonical.add(encode(k) + "=" + encode(v));
    });
    String request = "GET\n/\n" + String.join("&", canonical) + "\nhost:" + uri.getRawAuthority() + "\n\nhost\n" + sha("");
    String toSign = "AWS4-HMAC-SHA256\n" + when + "\n" + String.join("/", List.of(scope).subList(1, 5)) + "\n" + sha(request);
    byte[] key = hmac(hmac(hmac(hmac(("AWS4" + secret).getBytes(StandardCharsets.UTF_8), scope[1]), scope[2]), scope[3]), scope[4]);
    must(HexFormat.of().formatHex(hmac(key, toSign)).equals(q.get("X-Amz-Signature")), "signature of " + scope[0]);
    System.err.println("MskLogin: taken: " + scope[0] + " " + Duration.between(Instant.now(), ends).toSeconds());
    return new OAuthBearerToken() {
      public String value() { return value; }
      public Set<String> scope() { return Set.of(); }
      public long lifetimeMs() { return ends.toEpochMilli(); }
      public String principalName() { return scope[0]; }
      public Long startTimeMs() { return signed.toEpochMilli(); }
    };
  }
}
